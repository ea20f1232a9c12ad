// Decide, report, fail and explain from TypeScript, with a client that is generated from the service's own description.
import createClient from "openapi-fetch";
import type { components, paths } from "./worthwhile.ts";

type Explanation = components["schemas"]["Explanation"];

const client = createClient<paths>({ baseUrl: "http://127.0.0.1:8080" }); // headers: { authorization: `Bearer ${token}` }
const scheduler = "default";

/** What was asked for, or the service's own words for why not. */
function answer<T>({ data, error }: { data?: T; error?: { title: string; detail: string } }): T {
  if (data === undefined) throw new Error(`${error?.title}: ${error?.detail}`);
  return data;
}

async function decide(kind: string, options: number[]) {
  const body = { kind, options, features: { rain: 0.2, season: "spring" } };
  return answer(await client.POST("/v1/schedulers/{scheduler}/tasks", { params: { path: { scheduler } }, body }));
}

async function explain(task: string): Promise<Explanation> {
  const path = { scheduler, task };
  return answer(await client.GET("/v1/schedulers/{scheduler}/tasks/{task}/explanation", { params: { path } }));
}

const first = await decide("weather", [1, 5, 10]);
const done = { params: { path: { scheduler, task: first.task } }, body: { reward: 0.91, cost: 3.2 } };
answer(await client.POST("/v1/schedulers/{scheduler}/tasks/{task}/report", done));

const second = await decide("weather", [1, 5, 10]);
const broken = { params: { path: { scheduler, task: second.task } }, body: { cost: 1.5, reason: "out of memory" } };
answer(await client.POST("/v1/schedulers/{scheduler}/tasks/{task}/fail", broken));

for (const task of [first, second]) {
  const { option, state, reward, cost, reason, why } = await explain(task.task);
  console.log(JSON.stringify({ task: task.task, option, state, reward, cost, reason, why }));
}
