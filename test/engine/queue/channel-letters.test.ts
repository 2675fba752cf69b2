import { expect, test } from "bun:test";
import { CHANNELS } from "../../../src/app/channels.ts";
import { ChannelLetters } from "../../../src/engine/queue/codec.ts";

test("stored letters never change", () => {
  expect(CHANNELS.map(({ name, letter }) => `${name} ${letter}`)).toEqual(["email e", "whatsapp w", "wallet p"]);
});

test("each channel has a name and a lower-case letter of its own", () => {
  const email = { name: "email", letter: "e" };
  for (const other of [
    { name: "fax", letter: "e" },
    { name: "email", letter: "f" },
    { name: "fax", letter: "F" },
    { name: "fax", letter: "fx" },
    { name: "fax", letter: "" },
  ]) {
    expect(() => new ChannelLetters([email, other])).toThrow("letter of its own");
  }
});

test("an unknown channel and an unknown letter are refused", () => {
  const letters = new ChannelLetters(CHANNELS);
  expect(() => letters.toLetter("fax")).toThrow('unknown channel "fax"');
  expect(() => letters.toChannel("z")).toThrow('unknown letter "z"');
});
