import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { timeText } from '../../constructs/api/conditions.ts';
import type { Clock } from '../../constructs/lib/clock.ts';
import type { JsonObject } from '../../constructs/lib/json.ts';
import { redactObject } from '../../constructs/lib/redact.ts';
import { fileTrouble } from '../../constructs/lib/replacefile.ts';
import { FailedWithProblems } from '../failure.ts';

const { O_APPEND, O_CREAT, O_NONBLOCK, O_RDWR } = constants;
/** A pipe must not be waited for. */
const fileFlags = O_APPEND | O_CREAT | O_NONBLOCK | O_RDWR;

/** Whether the last line has no end: a full disk, or the end of the process, cut it off. The next one is a line of its own. */
async function isCutOff(handle: FileHandle): Promise<boolean> {
  const { size } = await handle.stat();
  if (size === 0) return false;
  const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, size - 1);
  return buffer[0] !== 0x0a;
}

/**
 * Appends entries to a file, one JSON object a line, each on the disk before it returns. What earlier runs wrote stays.
 * @throws FailedWithProblems when the file can not be written.
 */
export async function appendAudit(file: string, clock: Clock, entry: JsonObject): Promise<void> {
  const line = `${JSON.stringify(redactObject({ time: timeText(clock.now()), ...entry }))}\n`;
  try {
    const handle = await open(file, fileFlags, 0o600);
    try {
      if (!(await handle.stat()).isFile()) throw unwritable(file, 'it is not a file');
      await handle.appendFile((await isCutOff(handle)) ? `\n${line}` : line);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw error instanceof FailedWithProblems ? error : unwritable(file, fileTrouble(error));
  }
}

const unwritable = (file: string, why: string): FailedWithProblems =>
  new FailedWithProblems([
    {
      reason: 'AuditUnwritable',
      file,
      message: `the record of what is done can not be written: ${why}`,
      remedy: 'name another file with --audit; nothing is written to the cluster without a record',
    },
  ]);
