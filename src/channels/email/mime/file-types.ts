import { detectMimeType } from "nodemailer/lib/mime-funcs";

/**
 * Media types by a name's ending that nodemailer's table lacks, or has under a former name or a wrong one (IANA's registry of
 * October 2026, RFC 2046). A web archive is `multipart/related`, which must not be encoded as files are.
 */
const TYPES: Readonly<Record<string, string>> = {
  pkpass: "application/vnd.apple.pkpass",
  pkpasses: "application/vnd.apple.pkpasses",
  pages: "application/vnd.apple.pages",
  numbers: "application/vnd.apple.numbers",
  key: "application/vnd.apple.keynote",
  asice: "application/vnd.etsi.asic-e+zip",
  asics: "application/vnd.etsi.asic-s+zip",
  parquet: "application/vnd.apache.parquet",
  rar: "application/vnd.rar",
  gz: "application/gzip",
  zst: "application/zstd",
  geojson: "application/geo+json",
  jsonld: "application/ld+json",
  gpx: "application/gpx+xml",
  yaml: "application/yaml",
  yml: "application/yaml",
  toml: "application/toml",
  wasm: "application/wasm",
  xml: "application/xml",
  mht: "application/x-mimearchive",
  mhtml: "application/x-mimearchive",
  heic: "image/heic",
  heics: "image/heic-sequence",
  heif: "image/heif",
  heifs: "image/heif-sequence",
  hif: "image/heif",
  avif: "image/avif",
  avifs: "image/avif",
  apng: "image/apng",
  jxl: "image/jxl",
  jfif: "image/jpeg",
  aac: "audio/aac",
  flac: "audio/flac",
  m4a: "audio/mp4",
  opus: "audio/ogg",
  weba: "audio/webm",
  mkv: "video/matroska",
  m4v: "video/mp4",
  otf: "font/otf",
  ttf: "font/ttf",
  woff: "font/woff",
  woff2: "font/woff2",
  glb: "model/gltf-binary",
  gltf: "model/gltf+json",
  "3mf": "model/3mf",
  stl: "model/stl",
  usdz: "model/vnd.usdz+zip",
  md: "text/markdown",
  markdown: "text/markdown",
  mjs: "text/javascript",
  js: "text/javascript",
  vcf: "text/vcard",
};

/** Returns the media type of a file by its name. */
export function typeByName(filename: string): string {
  const ending = filename.slice(filename.lastIndexOf(".") + 1).toLowerCase();
  return (Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined) ?? detectMimeType(filename);
}
