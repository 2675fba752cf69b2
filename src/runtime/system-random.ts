import type { Random } from "../domain/random.ts";

/** The machine's randomness. `fill` uses the system's generator, because its bytes must be unpredictable. */
export const systemRandom: Random = {
  next: () => Math.random(),
  fill: (bytes) => {
    // getRandomValues accepts no more than this at once (Web Cryptography API, 10.1.1).
    for (let at = 0; at < bytes.length; at += 65_536) crypto.getRandomValues(bytes.subarray(at, at + 65_536));
    return bytes;
  },
};
