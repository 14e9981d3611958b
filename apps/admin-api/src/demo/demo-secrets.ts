import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { z } from 'zod';

const stateSchema = z.object({
  /** The enterprise that was made completely: from then on it belongs to its users, and is left as they have it. */
  completed: z.uuid().nullable().default(null),
  secrets: z.record(z.string(), z.string()).default({}),
});
type State = z.output<typeof stateSchema>;

/**
 * What the demo must remember between two starts: generated passwords and keys, which are stored nowhere else in the
 * clear. The file is readable by its owner alone.
 */
export class DemoSecrets {
  private state: State;

  constructor(private readonly file: string) {
    this.state = existsSync(file)
      ? stateSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
      : stateSchema.parse({});
  }

  get completed(): string | null {
    return this.state.completed;
  }

  complete(enterpriseId: string): void {
    this.state.completed = enterpriseId;
    this.write();
  }

  /** The secret of this name; made, and on disk, before anybody uses it. */
  get(name: string, make: () => string): string {
    const known = this.state.secrets[name];
    if (known !== undefined) return known;
    const made = make();
    this.state.secrets[name] = made;
    this.write();
    return made;
  }

  private write(): void {
    mkdirSync(dirname(this.file), { recursive: true });
    const next = `${this.file}.new`;
    writeFileSync(next, `${JSON.stringify(this.state, null, 2)}\n`, { mode: 0o600 });
    chmodSync(next, 0o600);
    renameSync(next, this.file);
  }
}
