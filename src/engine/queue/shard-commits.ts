import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";

/**
 * Group commits by where their calls go: a single Redis takes all shards in one call, a cluster one call a slot, so that
 * a part of it that is away holds up its own shards only.
 */
export class ShardCommits<Item, Answer> {
  private readonly commits = new Map<number, GroupCommit<Item, Answer>>();

  constructor(
    private readonly shardsPerCall: "all" | "one",
    private readonly options: GroupCommitOptions<Item, Answer>,
  ) {}

  submit(shard: number, item: Item): Promise<Answer> {
    const place = this.shardsPerCall === "all" ? 0 : shard;
    let commit = this.commits.get(place);
    if (commit === undefined) {
      commit = new GroupCommit(this.options);
      this.commits.set(place, commit);
    }
    return commit.submit(item);
  }
}
