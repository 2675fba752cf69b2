import type { CallTurns } from "../../http/call-turns.ts";
import { type Endpoint, endpoint } from "../../http/endpoint.ts";
import { failure } from "../../http/failures.ts";
import { pathText } from "../../http/parameters.ts";
import type { FileLinks } from "./pass-file-links.ts";
import type { PassStore } from "./passes.ts";
import { FETCHED_OFTEN, noSuchPass } from "./refusals.ts";

export interface PassFilePorts {
  readonly fileLinks: Pick<FileLinks, "read">;
  readonly passes: Pick<PassStore, "find" | "bundle">;
}

/**
 * `GET /p/{token}`: the file of an Apple pass that a message carried, for whoever received it. The token is the only check. It
 * serves the bundle that is stored and never signs one, or strangers could have us sign. `fileTurns`: by pass.
 */
export function passFileEndpoint({ fileLinks, passes }: PassFilePorts, fileTurns: CallTurns): Endpoint {
  return endpoint({
    method: "GET",
    path: "/p/:token",
    name: "pass_file",
    operation: "getPassFile",
    tag: "Public links",
    summary: "The file of an Apple pass that came with a message",
    params: { token: pathText("The signed token of a link in a message.", "vhkzlDfNYsGDYPJ4") },
    answers: {
      200: {
        description: "The pass as it was signed last, never cached.",
        schema: null,
        mediaType: "application/vnd.apple.pkpass",
        isBinary: true,
        headers: { "Content-Disposition": "A name for the file.", "Last-Modified": "When the file was signed." },
      },
    },
    fails: {
      404: failure(
        "NoSuchPassFile",
        "The token is unknown or was altered, or its pass is gone.",
        "there is no such pass",
      ),
      429: FETCHED_OFTEN,
    },
    async handle({ ports: { directory } }, exchange, params) {
      const linked = fileLinks.read(params["token"] ?? "");
      // A deleted tenant's passes are still there until all of it is removed.
      if (linked === null || (await directory.byId(linked.tenantId)) === null) throw noSuchPass();
      const pass = await passes.find(linked.tenantId, linked.passId);
      // The token of a pass whose job failed was given back: nobody has paid for it.
      if (pass === null || pass.state === "failed") throw noSuchPass();
      const bundle = await fileTurns.inTurn(pass.passId, () => passes.bundle(pass.passId));
      if (bundle === null) throw noSuchPass();
      const headers = {
        "content-type": "application/vnd.apple.pkpass",
        "content-disposition": `attachment; filename="${linked.passId}.pkpass"`,
        "last-modified": new Date(bundle.modifiedAt * 1000).toUTCString(),
        "cache-control": "private, no-store",
        "referrer-policy": "no-referrer",
      };
      return exchange.file(200, bundle.bytes, headers, linked);
    },
  });
}
