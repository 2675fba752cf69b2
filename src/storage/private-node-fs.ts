import { NodeFS } from "@electric-sql/pglite/nodefs";

/** What Emscripten's file system over Node's asks to be changed of a file. */
type SetAttributes = (file: unknown, attributes: { readonly mode?: number }) => void;

/**
 * PGlite's files on disk, for their owner alone. Emscripten sets a file's mode right after it has made it, so that our
 * umask does not count.
 */
export class PrivateNodeFs extends NodeFS {
  override async init(...args: Parameters<NodeFS["init"]>): ReturnType<NodeFS["init"]> {
    const { emscriptenOpts } = await super.init(...args);
    const preRun = [...(emscriptenOpts.preRun ?? []), maskModes];
    return { emscriptenOpts: { ...emscriptenOpts, preRun } };
  }
}

function maskModes({ NODEFS }: { readonly NODEFS: object }): void {
  // The two tables of operations that Emscripten's library_nodefs.js has, of files by name and of open ones.
  const tables = NODEFS as { node_ops: { setattr: SetAttributes }; stream_ops: { setattr: SetAttributes } };
  for (const table of [tables.node_ops, tables.stream_ops]) {
    const { setattr } = table;
    table.setattr = (file, attributes) =>
      setattr(file, attributes.mode === undefined ? attributes : { ...attributes, mode: attributes.mode & ~0o077 });
  }
}
