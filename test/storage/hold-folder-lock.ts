import { FolderLock } from "../../src/storage/folder-lock.ts";

/** Takes the lock of the given folder, prints so, and keeps it until it is killed. */
const lock = FolderLock.acquire(process.argv[2] ?? "");
process.stdout.write("held\n");
setInterval(() => lock, 60_000);
