import { expect, test } from "bun:test";
import { isConnectionFailure } from "../../src/domain/connection-failure.ts";
import { isOutage, TransportError, UnavailableError } from "../../src/domain/errors.ts";
import { saidBy, saidByCause } from "../../src/domain/tenants/said-by.ts";

const coded = (code: string) => Object.assign(new Error(`${code}: the system says so`), { code });

test("what the machine lacks for now is an outage, and what is not there or not allowed is a bug", () => {
  for (const code of ["EMFILE", "ENFILE", "ENOSPC", "EDQUOT", "EIO", "EROFS", "ENOMEM"]) {
    expect(isOutage(coded(code))).toBe(true);
  }
  for (const code of ["ENOENT", "EACCES", "EINVAL"]) expect(isOutage(coded(code))).toBe(false);
  expect([new TransportError(), new UnavailableError()].every(isOutage)).toBe(true);
  expect([new Error("a bug"), { code: "EIO" }, null].some(isOutage)).toBe(false);
});

test("a connection that found no file descriptor was not made, so the message can be sent again", () => {
  expect(["EMFILE", "ENFILE", "ENOBUFS"].map(coded).every(isConnectionFailure)).toBe(true);
});

test("whatever is thrown is said in words", () => {
  expect(saidBy(new Error("it broke"))).toBe("it broke");
  expect(saidBy(new RangeError())).toBe("RangeError");
  expect(saidBy("a word")).toBe("a word");
  expect(saidBy({ name: "ErrnoError", errno: 51, node: {} })).toBe("no space left on the disk (ENOSPC)");
  expect(saidBy({ name: "ErrnoError", errno: 7, node: {} })).toBe("name ErrnoError, errno 7");
  expect(saidBy({})).toBe("something that says nothing about itself");
  expect(saidBy(undefined)).toBe("undefined");
  expect(saidByCause(new Error("a query failed", { cause: { errno: 51 } }))).toBe("no space left on the disk (ENOSPC)");
});
