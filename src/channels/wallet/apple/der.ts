/** X.690 tags used in a CMS signature. */
export const TAG = {
  integer: 0x02,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utcTime: 0x17,
  generalizedTime: 0x18,
  sequence: 0x30,
  set: 0x31,
  /** `[0]`, constructed. */
  context0: 0xa0,
} as const;

/** Encodes one element in DER (X.690): tag, length, and its contents, given as DER or plain bytes. */
export function der(tag: (typeof TAG)[keyof typeof TAG], ...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const header = [tag, ...lengthOctets(length)];
  const element = new Uint8Array(header.length + length);
  element.set(header);
  let at = header.length;
  for (const part of parts) {
    element.set(part, at);
    at += part.length;
  }
  return element;
}

/** Encodes an object identifier, such as `1.2.840.113549.1.7.1`. */
export function oid(text: string): Uint8Array<ArrayBuffer> {
  const [first = 0, second = 0, ...others] = text.split(".").map(Number);
  return der(TAG.oid, Uint8Array.from([first * 40 + second, ...others].flatMap(base128)));
}

/** Encodes a SET OF, with its elements sorted by their bytes (X.690, 11.6). */
export function encodeSet(...elements: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return der(TAG.set, ...elements.toSorted(Buffer.compare));
}

/** Encodes a length in as few bytes as possible (X.690, 10.1). */
function lengthOctets(length: number): readonly number[] {
  if (length < 0x80) return [length];
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) octets.unshift(rest % 256);
  return [0x80 | octets.length, ...octets];
}

/** Encodes seven bits per byte, most significant first; all bytes but the last are marked (X.690, 8.19.2). */
function base128(arc: number): readonly number[] {
  const octets = [arc % 128];
  for (let rest = Math.floor(arc / 128); rest > 0; rest = Math.floor(rest / 128)) octets.unshift((rest % 128) | 0x80);
  return octets;
}
