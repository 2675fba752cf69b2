import { openParentLine } from "../../src/processes/child-process.ts";

/** A child that answers its parent, until it is stopped from outside. */
openParentLine()?.gone.addEventListener("abort", () => process.exit(0));
