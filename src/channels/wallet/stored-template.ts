import { PASS_STYLES, PASS_TYPES, type WalletTemplate } from "../../domain/channels/wallet.ts";
import { isJsonObject, type JsonObject } from "../../domain/texts/json.ts";

/** Converts a pass template to the form of its column. */
export function walletTemplateBody({ passType, style, passData }: WalletTemplate): JsonObject {
  return { pass_type: passType, style, pass_data: passData };
}

/** Parses the output of `walletTemplateBody`. */
export function parseWalletTemplate(body: JsonObject): WalletTemplate {
  const { pass_type, style, pass_data: passData } = body;
  const passType = PASS_TYPES.find((one) => one === pass_type);
  if (passType === undefined || passData === undefined || !isJsonObject(passData)) {
    throw new Error("a stored wallet template is incomplete");
  }
  return { passType, style: PASS_STYLES.find((one) => one === style) ?? null, passData };
}
