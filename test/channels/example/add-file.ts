import { CHANNELS } from "../../../src/app/channels.ts";
import type { AppChannel } from "../../../src/channels/contract.ts";
import { file } from "./file/channel.ts";

// Preloaded in each process of the program: does what the line in src/app/channels.ts would do.
(CHANNELS as AppChannel[]).push(file);
