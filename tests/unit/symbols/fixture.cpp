// C++ functions for the tests, as fixture.c has C functions.
#include <cstddef>

namespace fixture {

template <typename First, std::size_t kCount>
struct Pair {
  First first;
  template <typename Other>
  __attribute__((noinline)) int sum(Other other) const {
    return static_cast<int>(first) + static_cast<int>(other) + static_cast<int>(kCount);
  }
};

class Shape {
 public:
  Shape(int sides, double length);
  virtual ~Shape();
  virtual int area() const;

 private:
  int sides_;
  double length_;
};

Shape::Shape(int sides, double length) : sides_(sides), length_(length) {}
Shape::~Shape() = default;
int Shape::area() const { return static_cast<int>(sides_ * length_); }

}  // namespace fixture

int fixture_cpp(int a) {
  const fixture::Pair<int, 3> pair{a};
  return pair.sum(2.5) + pair.sum('a');
}
