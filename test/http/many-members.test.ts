import { expect, test } from "bun:test";
import { Type } from "@sinclair/typebox";
import { auditedDetail } from "../../src/http/audit.ts";
import { OperatorBody } from "../../src/http/operator-body.ts";
import { withoutNulls } from "../../src/http/schemas.ts";

const closed = { additionalProperties: false };
const body = new OperatorBody(
  Type.Object(
    {
      name: Type.String(),
      hosts: Type.Optional(Type.Array(Type.Object({ host: Type.Optional(Type.String()) }, closed))),
    },
    closed,
  ),
);
const MANY = 40_000;
const many = Object.fromEntries(Array.from({ length: MANY }, (_, i) => [`invented-${i}`, i]));

function catchRefusal(value: unknown): string {
  try {
    body.check(value);
  } catch (error) {
    return String(error);
  }
  throw new Error("the body was taken");
}

test("a refusal names twenty unknown members of a body that has any number of them", () => {
  const named = Array.from({ length: 20 }, (_, i) => `invented-${i}`).join(", ");
  expect(catchRefusal({ name: "a", ...many })).toEndWith(`unknown fields: ${named}, and more`);
  const items = Array.from({ length: MANY }, () => ({ colour: "red" }));
  expect(catchRefusal({ name: "a", hosts: items })).toContain("hosts[0][colour], hosts[1][colour], ");
  expect(catchRefusal({ name: "a", hosts: items }).length).toBeLessThan(1_000);
});

test("the audit log shows what a call declares, and thirty names of what else its body has", () => {
  const { body: shown } = auditedDetail({ body: ["name"] }, { ...many, name: "Acme", secret: "hunter2" }, null);
  expect(shown).toMatchObject({ name: "Acme", "invented-0": "(not shown)", "…": `${MANY + 1 - 30} more` });
  expect(Object.keys(shown as object)).toHaveLength(32);
});

test("the audit log counts names that no member has, and stores none of them", () => {
  const strange = ["字".repeat(200), "x".repeat(41), "two words", ""];
  const { body: shown } = auditedDetail({}, Object.fromEntries([...strange, "plain"].map((name) => [name, 1])), null);
  expect(shown).toEqual({ plain: "(not shown)", "…": "4 more" });
});

test("members that are null are taken out at every depth, and the body that was given stays as it was", () => {
  const schema = Type.Object({
    a: Type.Optional(Type.String()),
    b: Type.Optional(Type.Array(Type.Object({ c: Type.Optional(Type.Number()), d: Type.Null() }))),
  });
  const given = {
    a: null,
    b: [
      { c: null, d: null },
      { c: 1, d: null },
    ],
    other: null,
    ["__proto__"]: null,
  };
  const before = structuredClone(given);
  expect(withoutNulls(schema, given)).toEqual({
    b: [{ d: null }, { c: 1, d: null }],
    other: null,
    ["__proto__"]: null,
  });
  expect(given).toEqual(before);
  const whole = { a: "x", b: [{ c: 1, d: null }] };
  expect(withoutNulls(schema, whole)).toBe(whole);
});
