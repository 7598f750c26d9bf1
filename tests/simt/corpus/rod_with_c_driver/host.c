#include "config.h"

#include <string.h>

void solve_on_host(int red_black, int cells, int steps, real diffusivity, const real *start, real *end)
{
    real old[cells]; /* an array of variable length */
    memcpy(end, start, sizeof old);
    for (int s = 0; s < steps; s++)
        for (int colour = 0; colour <= red_black; colour++) {
            memcpy(old, end, sizeof old);
            for (int i = 0; i < cells; i++) {
                if (red_black && i % 2 != colour) continue;
                real l = i > 0 ? old[i - 1] : LEFT, r = i + 1 < cells ? old[i + 1] : RIGHT;
                end[i] = old[i] + diffusivity * (l - 2 * old[i] + r);
            }
        }
}
