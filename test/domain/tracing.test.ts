import { expect, test } from "bun:test";
import { formatTraceparent, parseTraceparent, TRACEPARENT_CHARS, traceIdIn } from "../../src/domain/tracing.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";

test.each([
  [`00-${TRACE}-${SPAN}-01`, true],
  [`00-${TRACE}-${SPAN}-00`, false],
  [`00-${TRACE}-${SPAN}-03`, true],
  // Versions to come may add to it.
  [`cc-${TRACE}-${SPAN}-01-what-comes`, true],
])("a traceparent is read: %s", (text, isSampled) => {
  expect(parseTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled });
});

test.each([
  "",
  "x",
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `00-${TRACE}-${SPAN}-0`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${"0".repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${"0".repeat(16)}-01`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01, 00-${TRACE}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01\n`,
  `cc-${TRACE}-${SPAN}-01-${"x".repeat(1000)}`,
])("a malformed traceparent is none: %j", (text) => {
  expect(parseTraceparent(text)).toBeNull();
});

test("what is written is read again, and has the length that entries of the queue count on", () => {
  const written = formatTraceparent({ traceId: TRACE, spanId: SPAN });
  expect(written).toHaveLength(TRACEPARENT_CHARS);
  expect(parseTraceparent(written)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled: true });
  expect(traceIdIn(written)).toBe(TRACE);
});
