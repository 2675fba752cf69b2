import { NodeFS } from "@electric-sql/pglite/nodefs";

/** Emscripten's request to change a file's attributes in its file system over Node's. */
type SetAttributes = (file: unknown, attributes: { readonly mode?: number }) => void;

/**
 * Keeps PGlite's files on disk private to their owner. Emscripten sets a file's mode right after creating it, which overrides
 * our umask.
 */
export class PrivateNodeFs extends NodeFS {
  override async init(...args: Parameters<NodeFS["init"]>): ReturnType<NodeFS["init"]> {
    const { emscriptenOpts } = await super.init(...args);
    const preRun = [...(emscriptenOpts.preRun ?? []), maskModes];
    return { emscriptenOpts: { ...emscriptenOpts, preRun } };
  }
}

function maskModes({ NODEFS }: { readonly NODEFS: object }): void {
  // The two operation tables of Emscripten's library_nodefs.js, for files by name and for open files.
  const tables = NODEFS as { node_ops: { setattr: SetAttributes }; stream_ops: { setattr: SetAttributes } };
  for (const table of [tables.node_ops, tables.stream_ops]) {
    const { setattr } = table;
    table.setattr = (file, attributes) =>
      setattr(file, attributes.mode === undefined ? attributes : { ...attributes, mode: attributes.mode & ~0o077 });
  }
}
