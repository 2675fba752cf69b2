import { Type } from "@sinclair/typebox";
import type { Tenant } from "../../domain/tenants/tenant.ts";
import { ApiError } from "../../http/api-error.ts";
import type { CallTurns } from "../../http/call-turns.ts";
import { type Endpoint, endpoint, reply, tenantEndpoint } from "../../http/endpoint.ts";
import { failure } from "../../http/failures.ts";
import { pathText } from "../../http/parameters.ts";
import { passesFile } from "./apple/signed-bundle.ts";
import { walletLimits } from "./limits.ts";
import { knownPass, NO_SUCH_PASS } from "./pass-endpoints.ts";
import type { FileLinks, LinkedPasses } from "./pass-file-links.ts";
import type { PassBundle, PassStore } from "./passes.ts";
import type { WalletPorts } from "./ports.ts";
import { FETCHED_OFTEN, noSuchPass, unusable } from "./refusals.ts";

export interface PassFilePorts {
  readonly fileLinks: Pick<FileLinks, "read">;
  readonly passes: Pick<PassStore, "find" | "bundle">;
}

const { passesPerFileMax, passesFileBytesMax } = walletLimits;
const ONE = "application/vnd.apple.pkpass";
const SEVERAL = "application/vnd.apple.pkpasses";
const TOO_LARGE = `together have more than ${passesFileBytesMax} bytes`;

const PassLink = Type.Object(
  {
    download_url: Type.String({ format: "uri", description: "Whoever has it has the passes." }),
    download_token: Type.String({
      description: "The last part of the address, for buttons whose template has the rest.",
    }),
  },
  { $id: "PassLink" },
);

/**
 * `GET /p/{token}`: the file of an Apple pass that a message carried, or of several, for its recipient. The token is
 * the only check. It serves stored bundles and never signs one, or strangers could make us sign. `fileTurns`: by pass.
 */
export function passFileEndpoint({ fileLinks, passes }: PassFilePorts, fileTurns: CallTurns): Endpoint {
  return endpoint({
    method: "GET",
    path: "/p/:token",
    name: "pass_file",
    operation: "getPassFile",
    tag: "Public links",
    summary: "The file of an Apple pass that came with a message, or of several",
    params: { token: pathText("The signed token of a link.", "vhkzlDfNYsGDYPJ4") },
    answers: {
      200: {
        description:
          "The pass as it was signed last, never cached; of a link to several passes, all of them that are there.",
        schema: null,
        mediaType: [ONE, SEVERAL],
        isBinary: true,
        headers: { "Content-Disposition": "A name for the file.", "Last-Modified": "When it was last signed." },
      },
    },
    fails: {
      404: failure(
        "NoSuchPassFile",
        "The token is unknown or was altered, or its passes are gone.",
        "there is no such pass",
      ),
      409: failure("PassesTooLarge", "The passes have grown too large for one file.", `the passes ${TOO_LARGE}`),
      429: FETCHED_OFTEN,
    },
    async handle({ ports: { directory } }, exchange, params) {
      const linked = fileLinks.read(params["token"] ?? "");
      // A deleted tenant's passes remain until its removal is complete.
      if (linked === null || (await directory.byId(linked.tenantId)) === null) throw noSuchPass();
      const { passIds } = linked;
      const bundles = await fileTurns.inTurn(passIds.join(), () => collectBundles(passes, linked));
      const modifiedAt = Math.max(...bundles.map(([, bundle]) => bundle.modifiedAt));
      const [first] = bundles;
      if (first === undefined) throw noSuchPass();
      const isOne = passIds.length === 1;
      const files = Object.fromEntries(bundles.map(([passId, { bytes }]) => [`${passId}.pkpass`, bytes]));
      const headers = {
        "content-type": isOne ? ONE : SEVERAL,
        "content-disposition": `attachment; filename="${isOne ? `${first[0]}.pkpass` : "passes.pkpasses"}"`,
        "last-modified": new Date(modifiedAt * 1000).toUTCString(),
        "cache-control": "private, no-store",
        "referrer-policy": "no-referrer",
      };
      return exchange.file(200, isOne ? first[1].bytes : passesFile(files, modifiedAt * 1000), headers, linked);
    },
  });
}

/** Collects the stored bundles of the existing passes. */
async function collectBundles(
  passes: PassFilePorts["passes"],
  { tenantId, passIds }: LinkedPasses,
): Promise<readonly (readonly [passId: string, bundle: PassBundle])[]> {
  const found: [string, PassBundle][] = [];
  let bytes = 0;
  for (const passId of passIds) {
    const pass = await passes.find(tenantId, passId);
    // The token of a pass whose job failed was refunded, so the pass is not paid for.
    if (pass === null || pass.state === "failed") continue;
    const bundle = await passes.bundle(passId);
    if (bundle === null) continue;
    found.push([passId, bundle]);
    bytes += bundle.bytes.byteLength;
    if (passIds.length > 1 && bytes > passesFileBytesMax) throw new ApiError(409, `the passes ${TOO_LARGE}`);
  }
  return found;
}

/** `POST /v1/passes/link`: the public link to the files of passes that exist. Each is signed first if it has not been. */
export function passLinkEndpoint({ wallet }: { readonly wallet: LinkingPorts }): Endpoint {
  return tenantEndpoint({
    method: "POST",
    path: "/v1/passes/link",
    name: "link_passes",
    operation: "linkPasses",
    tag: "Passes",
    channel: "wallet",
    scope: "read",
    effect: "read",
    summary: "A public link to Apple passes, which come as one file",
    description:
      "Of several passes the file is a `.pkpasses` bundle, and Wallet adds all of them at once. The link has no end, and leads to the " +
      "latest version of each pass.",
    body: Type.Object(
      {
        pass_ids: Type.Array(Type.String(), {
          minItems: 1,
          maxItems: passesPerFileMax,
          uniqueItems: true,
          description: `a list of 1 to ${passesPerFileMax} ids of Apple passes, each once`,
        }),
      },
      {
        additionalProperties: false,
        examples: [{ pass_ids: ["01936f2e-7c1a-7c44-8b1e-6d0f2a9be310", "01936f2e-7c1a-7c44-8b1e-6d0f2a9be311"] }],
      },
    ),
    answers: {
      200: {
        description: "The link, always the same for the same passes in the same order.",
        schema: PassLink,
        examples: [{ download_url: "https://api.example.com/p/vhkzlDfNYsGDYPJ4", download_token: "vhkzlDfNYsGDYPJ4" }],
      },
    },
    fails: { 404: NO_SUCH_PASS },
    async handle({ tenant, body: { pass_ids } }) {
      const { tenantId } = tenant;
      let bytes = 0;
      const passIds: string[] = [];
      for (const id of pass_ids) {
        const passId = id.toLowerCase();
        if (passIds.includes(passId)) throw new ApiError(400, `pass_ids has ${passId.slice(0, 100)} twice`);
        passIds.push(passId);
        bytes += await wallet.fileTurns.inTurn(tenantId, () => signedBytes(wallet, tenant, passId));
      }
      if (passIds.length > 1 && bytes > passesFileBytesMax) {
        throw new ApiError(400, `pass_ids ${TOO_LARGE}: ask for fewer at a time`);
      }
      const { url: download_url, token: download_token } = wallet.fileLinks.createLink(tenantId, passIds);
      return reply(200, { download_url, download_token });
    },
  });
}

type LinkingPorts = Pick<WalletPorts, "bundles" | "fileTurns"> & {
  readonly passes: Pick<PassStore, "find">;
  readonly fileLinks: Pick<FileLinks, "createLink">;
};

/** Returns the size of the pass's file. */
async function signedBytes(wallet: LinkingPorts, tenant: Tenant, id: string): Promise<number> {
  const pass = await knownPass(wallet.passes, tenant, id);
  if (pass === null) throw new ApiError("no_such_pass", `there is no such pass: ${id.slice(0, 100)}`);
  if (pass.content.type !== "apple") {
    throw new ApiError(400, `pass_ids: ${id} is a pass of type google, which has no file: use its save_link`);
  }
  const bundle = await wallet.bundles.getBundle(pass, tenant);
  if (bundle === null) throw noSuchPass();
  if ("why" in bundle) throw unusable(bundle);
  return bundle.bytes.byteLength;
}
