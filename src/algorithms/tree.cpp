#include "algorithms/tree.hpp"

#include <bit>

namespace coccl {
namespace {

// The position in [low, high] with the most trailing zeros.
int root_of(int low, int high) {
  int root = high;
  while ((root & (root - 1)) >= low) root &= root - 1;
  return root;
}

}  // namespace

TreePlace tree_place(int tree, int rank, int size) {
  const auto rank_at = [&](int position) { return tree == 0 ? position - 1 : position % size; };
  const int position = tree == 0 ? rank + 1 : (rank == 0 ? size : rank);

  TreePlace place;
  int low = 1;
  int high = size;
  int root = root_of(low, high);
  while (root != position) {
    place.parent = rank_at(root);
    ++place.depth;
    (position < root ? high : low) = position < root ? root - 1 : root + 1;
    root = root_of(low, high);
  }
  int children = 0;
  if (low < position) place.children[children++] = rank_at(root_of(low, position - 1));
  if (position < high) place.children[children++] = rank_at(root_of(position + 1, high));
  return place;
}

int tree_depth(int size) { return std::bit_width(static_cast<unsigned>(size)) - 1; }

}  // namespace coccl
