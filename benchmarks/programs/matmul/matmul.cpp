// Blocked single-precision matrix product. Prints how long one product takes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define N 384

constexpr int BLOCK_I = 8;
constexpr int BLOCK_J = 16;
static const int BLOCK_K = 8;
#define UNROLL 2
const int REPEATS = 3;
const int WARMUP = 1;

static void multiply(const float *a, const float *b, float *c) {
    std::fill(c, c + N * N, 0.0f);
    for (int i0 = 0; i0 < N; i0 += BLOCK_I)
        for (int k0 = 0; k0 < N; k0 += BLOCK_K)
            for (int j0 = 0; j0 < N; j0 += BLOCK_J)
                for (int i = i0; i < std::min(i0 + BLOCK_I, N); ++i)
                    for (int k = k0; k < std::min(k0 + BLOCK_K, N); ++k) {
                        const float x = a[i * N + k];
                        const int end = std::min(j0 + BLOCK_J, N);
                        int j = j0;
                        for (; j + UNROLL <= end; j += UNROLL)
                            for (int u = 0; u < UNROLL; ++u) c[i * N + j + u] += x * b[k * N + j + u];
                        for (; j < end; ++j) c[i * N + j] += x * b[k * N + j];
                    }
}

int main() {
    std::vector<float> a(N * N), b(N * N), c(N * N);
    for (int i = 0; i < N * N; ++i) {
        a[i] = float(i % 13) / 13;
        b[i] = float(i % 7) / 7;
    }
    for (int r = 0; r < WARMUP; ++r) multiply(a.data(), b.data(), c.data());
    double best = 1e9;
    for (int r = 0; r < REPEATS; ++r) {
        auto start = std::chrono::steady_clock::now();
        multiply(a.data(), b.data(), c.data());
        std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
        best = std::min(best, spent.count());
    }
    double expected = 0;
    for (int k = 0; k < N; ++k) expected += double(a[N + k]) * b[k * N + 1];
    if (std::fabs(c[N + 1] - expected) > 0.01) {
        std::fprintf(stderr, "wrong product\n");
        return 1;
    }
    std::printf("latency_ms: %.3f\n", best);
}
