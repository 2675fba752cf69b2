import type { AppChannel } from "../../../src/app/app-channel.ts";
import { CHANNELS } from "../../../src/app/channels.ts";
import { file } from "./file/channel.ts";

// Before the program, in each of its processes: what the line in src/app/channels.ts would do.
(CHANNELS as AppChannel[]).push(file);
