import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * Opens a `.pkpass` file, or a `.pkpasses` bundle of some, with Python's zipfile, compares each pass's files with its
 * manifest, and has OpenSSL verify the manifest's signature. Resolves to the names of the passes' files.
 *
 * @param rootFile The root, in PEM, that the passes' certificate comes from.
 */
export async function verifiedPasses(file: Uint8Array, rootFile: string): Promise<readonly (readonly string[])[]> {
  const folder = await mkdtemp(join(tmpdir(), "waybill-passes-"));
  try {
    await Bun.write(join(folder, "file"), file);
    return await Bun.$`python3 -c ${OPEN} ${rootFile}`.cwd(folder).json();
  } finally {
    await rm(folder, { recursive: true });
  }
}

const OPEN = `
import hashlib, io, json, subprocess, sys, zipfile

def opened(source):
    archive = zipfile.ZipFile(source)
    assert archive.testzip() is None
    return archive

def verified(archive):
    manifest = json.loads(archive.read("manifest.json"))
    assert set(manifest) == set(archive.namelist()) - {"manifest.json", "signature"}
    for name, digest in manifest.items():
        assert hashlib.sha1(archive.read(name)).hexdigest() == digest, name
    archive.extractall()
    verify = "openssl cms -verify -binary -inform DER -in signature -content manifest.json -purpose any -out /dev/null"
    subprocess.run([*verify.split(), "-CAfile", sys.argv[1]], check=True, stderr=subprocess.PIPE)
    return archive.namelist()

whole = opened("file")
isOne = "pass.json" in whole.namelist()
passes = [whole] if isOne else [opened(io.BytesIO(whole.read(name))) for name in whole.namelist()]
print(json.dumps([verified(one) for one in passes]))
`;
