#pragma once

#include <functional>
#include <memory>
#include <vector>

namespace coccl::checker {

// Numbered threads of control on one thread, each with its own small stack, switched by hand, so
// that a run of a thousand ranks is cheap and always the same.
class Fibers {
 public:
  explicit Fibers(int count);
  ~Fibers();

  int count() const { return static_cast<int>(fibers_.size()); }

  // Gives a fiber something to run, which must not throw. The fiber has to be idle.
  void start(int fiber, std::function<void()> body);
  // Runs a fiber until it pauses or its body returns.
  void resume(int fiber);
  // From within a fiber: back to whoever resumed it.
  void pause();
  bool idle(int fiber) const;

 private:
  struct Fiber;
  struct Switch;
  void prepare(Fiber& fiber);
  static void enter(unsigned high, unsigned low);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::unique_ptr<Switch> switch_;
};

}  // namespace coccl::checker
