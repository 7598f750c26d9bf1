#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A table of solvers, and a main function, in C */
static const struct {
    const char *name;
    solver run;
    int red_black;
} solvers[] = {
    {.name = "explicit", .run = solve_explicit, .red_black = 0},
    {.name = "red-black", .run = solve_red_black, .red_black = 1},
};

int main(int argc, char *argv[])
{
    int cells = argc > 1 ? atoi(argv[1]) : CELLS, steps = argc > 2 ? atoi(argv[2]) : 40, failed = 0, template = 0;
    real *start = malloc(sizeof(real) * cells), *end = malloc(sizeof(real) * cells), *want = malloc(sizeof(real) * cells);

    if (device_count() < 1) {
        fputs("no device\n", stderr);
        return 2;
    }
    for (int i = 0; i < cells; i++) start[i] = (real)((i * i) % 32) / 16 - 1;
    for (; template < (int)(sizeof solvers / sizeof *solvers); template++) {
        double worst = 0, sum = 0;
        solvers[template].run(cells, steps, R(0.25), start, end);
        solve_on_host(solvers[template].red_black, cells, steps, R(0.25), start, want);
        for (int i = 0; i < cells; i++) {
            double apart = fabs((double)end[i] - want[i]);
            worst = MAX(worst, apart);
            sum += want[i];
            if (!(apart < 1e-5)) failed++;
        }
        printf("%-9s %d cells, %d steps, sum %.2f: %s\n", solvers[template].name, cells, steps, sum,
               worst < 1e-5 ? "close" : "apart");
    }
    free(start), free(end), free(want);
    puts(failed ? "FAILED" : "PASSED");
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
