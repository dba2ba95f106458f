#include "checker_fibers.hpp"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace coccl::checker {
namespace {

constexpr std::size_t stack_bytes = 256 * 1024;  // of address space; pages come on use

// What a sanitizer has to be told when the stack changes.
#ifdef __SANITIZE_ADDRESS__
void leaving(void** fake, const void* stack, std::size_t bytes) {
  __sanitizer_start_switch_fiber(fake, stack, bytes);
}
void arrived(void* fake, const void** from, std::size_t* bytes) {
  __sanitizer_finish_switch_fiber(fake, from, bytes);
}
#else
void leaving(void**, const void*, std::size_t) {}
void arrived(void*, const void**, std::size_t*) {}
#endif

#ifdef __SANITIZE_THREAD__
void* new_thread() { return __tsan_create_fiber(0); }
void* this_thread() { return __tsan_get_current_fiber(); }
void switch_thread(void* thread) { __tsan_switch_to_fiber(thread, 0); }
void end_thread(void* thread) { __tsan_destroy_fiber(thread); }
#else
void* new_thread() { return nullptr; }
void* this_thread() { return nullptr; }
void switch_thread(void*) {}
void end_thread(void*) {}
#endif

}  // namespace

struct Fibers::Fiber {
  Fiber()
      : stack(mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0)),
        thread(new_thread()) {
    if (stack == MAP_FAILED) throw std::bad_alloc();
  }
  ~Fiber() {
    end_thread(thread);
    munmap(stack, stack_bytes);
  }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  void* stack;
  void* thread;
  void* fake = nullptr;
  ucontext_t context{};
  std::function<void()> body;
};

// The fiber that runs now, and the stack to go back to.
struct Fibers::Switch {
  Fiber* running = nullptr;
  ucontext_t home{};
  void* home_thread = nullptr;
  void* home_fake = nullptr;
  const void* home_stack = nullptr;
  std::size_t home_bytes = 0;
};

Fibers::Fibers(int count) : switch_(std::make_unique<Switch>()) {
  for (int i = 0; i < count; ++i) prepare(*fibers_.emplace_back(std::make_unique<Fiber>()));
}

void Fibers::prepare(Fiber& fiber) {
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = stack_bytes;
  // A context's arguments are ints, so the pointer travels in halves.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&fiber.context, reinterpret_cast<void (*)()>(&Fibers::enter), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

Fibers::~Fibers() = default;

// Serves one body after another; it never returns, since a context ends its thread when it does.
void Fibers::enter(unsigned high, unsigned low) {
  auto& fibers = *reinterpret_cast<Fibers*>(std::uintptr_t{high} << 32 | low);
  arrived(nullptr, &fibers.switch_->home_stack, &fibers.switch_->home_bytes);
  for (;;) {
    Fiber& fiber = *fibers.switch_->running;
    fiber.body();
    fiber.body = nullptr;
    fibers.pause();
  }
}

void Fibers::start(int fiber, std::function<void()> body) {
  fibers_[fiber]->body = std::move(body);
}

void Fibers::resume(int fiber) {
  Fiber& next = *fibers_[fiber];
  switch_->running = &next;
  switch_->home_thread = this_thread();
  leaving(&switch_->home_fake, next.stack, stack_bytes);
  switch_thread(next.thread);
  swapcontext(&switch_->home, &next.context);
  arrived(switch_->home_fake, nullptr, nullptr);
}

void Fibers::pause() {
  Fiber& fiber = *switch_->running;
  leaving(&fiber.fake, switch_->home_stack, switch_->home_bytes);
  switch_thread(switch_->home_thread);
  swapcontext(&fiber.context, &switch_->home);
  arrived(fiber.fake, &switch_->home_stack, &switch_->home_bytes);
}

bool Fibers::idle(int fiber) const { return fibers_[fiber]->body == nullptr; }

}  // namespace coccl::checker
