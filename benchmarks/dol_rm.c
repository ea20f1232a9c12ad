/* DOL-RM on a Gaussian world, straight in C: the yardstick that benchmarks/speed.py holds the compiled Python to. */

#include <math.h>
#include <stdint.h>

typedef struct {
    double reward, cost, gap;          /* the truth, for the accounting */
    double reward_noise, cost_noise;   /* standard deviations */
} Truth;

typedef struct {
    double pulls, mean_reward, mean_cost;
} Arm;

typedef struct {
    double horizon, reward_max, cost_min, price_min, price_max;
    int64_t anytime;
} Policy;

typedef struct {
    double tasks, ratio;
} Progress;

static inline double at_least(double low, double value) { return value > low ? value : low; }
static inline double at_most(double high, double value) { return value < high ? value : high; }

/* Plays `count` tasks; totals are in the order of worthwhile.simulation.loop.TOTALS. */
void play(const Policy *policy, int64_t width, const uint32_t *options, const int64_t *offers, const Truth *truth,
          Arm *arms, Progress *progress, const uint32_t *kinds, const double *latent, int64_t count, double *totals)
{
    const double reward_max = policy->reward_max, cost_min = policy->cost_min;
    const double price_min = policy->price_min, price_max = policy->price_max;
    const double log_horizon = log(policy->horizon);
    const double fixed_step = 1.0 / (cost_min * sqrt(policy->horizon));
    const int64_t anytime = policy->anytime;
    double ratio = progress->ratio, tasks = progress->tasks;
    double reward_sum = 0, cost_sum = 0, expected_reward = 0, expected_cost = 0;
    double regret = 0, estimated_reward = 0, estimated_cost = 0;

    for (int64_t task = 0; task < count; task++) {
        const int64_t row = (int64_t)kinds[task] * width;
        const int64_t offered = offers[kinds[task]];
        int64_t best = row;
        double best_score = -INFINITY, best_reward = 0, best_cost = 0;
        for (int64_t place = 0; place < offered; place++) {
            const int64_t candidate = row + options[row + place];
            const Arm *arm = &arms[candidate];
            double reward = reward_max, cost = cost_min;
            if (arm->pulls > 0) {
                const double confidence_width = sqrt(log_horizon / arm->pulls);
                reward = at_most(reward_max, arm->mean_reward + confidence_width);
                cost = at_least(cost_min, arm->mean_cost - confidence_width);
            }
            const double score = reward - ratio * cost;
            if (score > best_score) {
                best = candidate;
                best_score = score;
                best_reward = reward;
                best_cost = cost;
            }
        }

        const Truth *real = &truth[best];
        const double reward = real->reward + real->reward_noise * latent[2 * task];
        const double cost = real->cost + real->cost_noise * latent[2 * task + 1];

        tasks += 1.0;
        const double step = anytime ? 1.0 / (cost_min * (tasks + 1.0)) : fixed_step;
        ratio = at_most(price_max, at_least(price_min, ratio + step * (best_reward - ratio * best_cost)));

        Arm *pulled = &arms[best];
        const double before = pulled->pulls;
        pulled->pulls = before + 1.0;
        pulled->mean_reward = (pulled->mean_reward * before + reward) / (before + 1.0);
        pulled->mean_cost = (pulled->mean_cost * before + cost) / (before + 1.0);

        reward_sum += reward;
        cost_sum += cost;
        expected_reward += real->reward;
        expected_cost += real->cost;
        regret += real->gap;
        estimated_reward += best_reward;
        estimated_cost += best_cost;
    }

    progress->ratio = ratio;
    progress->tasks = tasks;
    totals[0] += reward_sum;
    totals[1] += cost_sum;
    totals[2] += expected_reward;
    totals[3] += expected_cost;
    totals[4] += regret;
    totals[5] += estimated_reward;
    totals[6] += estimated_cost;
}
