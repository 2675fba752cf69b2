import { expect, test } from "bun:test";
import { parseQuota } from "../../src/processes/available-cores.ts";
import { planProcesses } from "../../src/processes/process-plan.ts";

const ALL = ["api", "dispatcher", "recorder"] as const;
const EMBEDDED = { roles: ALL, hasStores: true, shards: 16 };

/** `main roles | API processes | dispatchers`. */
const shown = (options: Parameters<typeof planProcesses>[0]) => {
  const { mainRoles, api, dispatcher } = planProcesses(options);
  return `${mainRoles.join()} | ${api} | ${dispatcher}`;
};

test("the API leaves the main process first, and delivery leaves it when two other processes deliver", () => {
  const plans = [1, 2, 3, 4, 5, 8, 16].map((total) => shown({ ...EMBEDDED, wanted: { total } }));
  expect(plans).toEqual([
    "api,dispatcher,recorder | 0 | 0",
    "dispatcher,recorder | 1 | 0",
    "dispatcher,recorder | 1 | 1",
    "recorder | 1 | 2",
    "recorder | 1 | 3",
    "recorder | 2 | 5",
    "recorder | 4 | 11",
  ]);
});

test("a list sets how many processes have a role, and roles that it does not name stay in the main process", () => {
  expect(shown({ ...EMBEDDED, wanted: { api: 1, dispatcher: 0 } })).toBe("dispatcher,recorder | 1 | 0");
  expect(shown({ ...EMBEDDED, wanted: { api: 0, dispatcher: 1 } })).toBe("api,recorder | 0 | 1");
  expect(shown({ ...EMBEDDED, wanted: { api: 3, dispatcher: 4 } })).toBe("recorder | 3 | 4");
});

test("fewer roles are spread over all processes; a role that only watches is not counted", () => {
  const servers = { hasStores: false, shards: 16, wanted: { total: 4 } };
  expect(shown({ ...servers, roles: ["api"] })).toBe(" | 4 | 0");
  expect(shown({ ...servers, roles: ["dispatcher"] })).toBe(" | 0 | 4");
  expect(shown({ ...servers, roles: ["api", "dispatcher"] })).toBe(" | 1 | 3");
  expect(shown({ ...servers, roles: ["dispatcher", "recorder"] })).toBe("recorder | 0 | 3");
  expect(shown({ ...servers, roles: ["recorder", "maillog"] })).toBe("recorder,maillog | 0 | 0");
  expect(shown({ ...servers, roles: ["smtp"] })).toBe("smtp | 0 | 0");
  expect(shown({ ...servers, wanted: { total: 1 }, roles: ["api"] })).toBe("api | 0 | 0");
});

test("there are no more dispatchers than shards", () => {
  expect(shown({ ...EMBEDDED, shards: 2, wanted: { total: 16 } })).toBe("recorder | 4 | 2");
});

test("a control group's quota bounds the cores, and one without a quota does not", () => {
  expect(parseQuota("150000 100000\n")).toBe(1.5);
  expect(parseQuota("max 100000\n")).toBe(Number.POSITIVE_INFINITY);
  expect(parseQuota("-1 100000")).toBe(Number.POSITIVE_INFINITY);
  expect(parseQuota("")).toBe(Number.POSITIVE_INFINITY);
});
