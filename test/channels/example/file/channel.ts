import { join } from "node:path";
import { sendEndpoint } from "../../../../src/http/sending/send-endpoint.ts";
import { FileChannel } from "./file-channel.ts";
import { acceptFile, FileSend } from "./request.ts";

const sendFile = sendEndpoint({
  path: "/v1/send/file",
  name: "send_file",
  operation: "sendFile",
  summary: "Queue a line for a file",
  channel: "file",
  scope: "file",
  body: { schema: FileSend, examples: [{ name: "greetings", text: "Hello Ada" }] },
  accept: acceptFile,
});

/** The channel's whole interface to the app. */
export const file = {
  name: "file",
  letter: "f",
  endpoints: () => [sendFile],
  open: ({ config }: { readonly config: { readonly home: string } }) => ({
    channel: () => new FileChannel(join(config.home, "files")),
  }),
};
