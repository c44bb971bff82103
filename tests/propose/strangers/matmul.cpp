// Blocked matrix product; prints the time of one product and a checksum.
#include <chrono>
#include <cstdio>
#include <vector>

constexpr int N = 256;            // size of the matrices
constexpr int BLOCK = 16;         // 1 .. 64
constexpr int UNROLL = 4;         // one of 1 2 4 8
static const float SCALE = 0.5f;  // 0.1 .. 2.0
const unsigned REPEATS = 3;
// const int OLD_BLOCK = 8;       // 1 .. 64

int main() {
    std::vector<float> a(N * N, SCALE), b(N * N, 1.0f), c(N * N, 0.0f);
    auto begin = std::chrono::steady_clock::now();
    for (unsigned r = 0; r < REPEATS; ++r)
        for (int i0 = 0; i0 < N; i0 += BLOCK)
            for (int k0 = 0; k0 < N; k0 += BLOCK)
                for (int i = i0; i < i0 + BLOCK && i < N; ++i)
                    for (int k = k0; k < k0 + BLOCK && k < N; ++k)
                        for (int j = 0; j < N; j += UNROLL)
                            for (int u = 0; u < UNROLL; ++u) c[i * N + j + u] += a[i * N + k] * b[k * N + j + u];
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    std::printf("---\nseconds: %.6f\nchecksum: %.1f\n", spent.count() / REPEATS, c[0]);
}
