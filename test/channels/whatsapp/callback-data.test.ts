import { expect, test } from "bun:test";
import fc from "fast-check";
import { CallbackData } from "../../../src/channels/whatsapp/callbacks/callback-keys.ts";
import { JobIds } from "../../../src/domain/ids.ts";
import { systemClock } from "../../../src/runtime/system-clock.ts";
import { systemRandom } from "../../../src/runtime/system-random.ts";

const [OLD, NEW] = [new Uint8Array(32).fill(1), new Uint8Array(32).fill(2)];
const callbacks = new CallbackData([NEW, OLD]);
const ids = new JobIds(systemClock, systemRandom);
const message = fc.record({
  tenantId: fc.stringMatching(/^[a-z0-9][a-z0-9-]{0,62}$/),
  jobId: fc.constant(null).map(() => ids.next()),
  phoneNumberId: fc.stringMatching(/^[0-9]{1,32}$/),
});

test("callback data gives back the very message that was signed, also after the key was rotated", () => {
  fc.assert(
    fc.property(message, (signed) => {
      const text = callbacks.sign(signed);
      expect(text.length).toBeLessThanOrEqual(200);
      expect(callbacks.read(text)).toEqual(signed);
      expect(callbacks.read(new CallbackData([OLD]).sign(signed))).toEqual(signed);
      expect(new CallbackData([OLD]).read(text)).toBeNull();
    }),
  );
});

test("callback data with any character changed, added or left out names no message", () => {
  fc.assert(
    fc.property(message, fc.nat(), (signed, seed) => {
      const text = callbacks.sign(signed);
      const at = seed % text.length;
      const other = text.charAt(at) === "a" ? "b" : "a";
      expect(callbacks.read(text.slice(0, at) + other + text.slice(at + 1))).toBeNull();
      expect(callbacks.read(text.slice(0, at) + text.slice(at + 1))).toBeNull();
      for (const more of ["/", "=", " ", "A", "\n"]) {
        expect(callbacks.read(text + more)).toBeNull();
        expect(callbacks.read(more + text)).toBeNull();
      }
    }),
  );
});

test("unsigned callback data names no message, however long it is", () => {
  for (const text of ["", "/", "////", "acme", `acme/${ids.next()}`, `acme/${ids.next()}/555`, "ñ".repeat(180)]) {
    expect(callbacks.read(text)).toBeNull();
  }
  fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => expect(callbacks.read(text)).toBeNull()));
});
