#pragma once

#include <array>

namespace coccl {

// Two binary trees over the same ranks, such that no rank has children in both: each carries half
// of the data, and every rank's link is used alike.
//
// A tree is an in-order search tree over positions 1 … size. The root of a range of positions is
// the one with the most trailing zero bits, so odd positions are leaves. Tree 0 puts position p on
// rank p − 1, tree 1 on rank p mod size: even positions fall on odd ranks in the one and on even
// ranks in the other.
struct TreePlace {
  int parent = -1;
  std::array<int, 2> children{-1, -1};  // ranks, lower positions first; -1 after the last
  int depth = 0;                        // exchanges from the root

  bool root() const { return parent < 0; }
  int inputs() const { return (children[0] >= 0) + (children[1] >= 0); }
};

TreePlace tree_place(int tree, int rank, int size);

// The depth of the deepest rank: the whole part of log2(size).
int tree_depth(int size);

}  // namespace coccl
