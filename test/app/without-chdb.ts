import { plugin } from "bun";

/** `bun --preload`: a machine for which there is no build of chDB. */
plugin({
  name: "without chDB",
  setup(build) {
    build.module("chdb", () => {
      throw new Error("no native binding");
    });
  },
});
