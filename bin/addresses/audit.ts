import { open } from 'node:fs/promises';
import { timeText } from '../../constructs/api/conditions.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { redactObject } from '../../constructs/lib/redact.ts';
import { fileTrouble } from '../../constructs/lib/replacefile.ts';
import { FailedWithProblems } from '../failure.ts';

/**
 * Appends entries to a file, one JSON object a line, each on the disk before it returns. What earlier runs wrote stays.
 * @throws FailedWithProblems when the file can not be written.
 */
export async function appendAudit(file: string, clock: Clock, entry: JsonObject): Promise<void> {
  const line = `${JSON.stringify(redactObject({ time: timeText(clock.now()), ...entry }))}\n`;
  try {
    const handle = await open(file, 'a', 0o600);
    try {
      await handle.appendFile(line);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw new FailedWithProblems([
      {
        reason: 'AuditUnwritable',
        file,
        message: `the record of what is done can not be written: ${fileTrouble(error)}`,
        remedy: 'name another file with --audit; nothing is written to the cluster without a record',
      },
    ]);
  }
}
