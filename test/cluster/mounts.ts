import { readFileSync } from 'node:fs';

export interface Mount {
  readonly point: string;
  readonly type: string;
}

/** Mounts of this process's mount namespace in the order they were made. */
export function mountPoints(): Mount[] {
  return readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .filter(Boolean)
    .map((line) => {
      const [before = '', after = ''] = line.split(' - ');
      const point = (before.split(' ')[4] ?? '').replace(/\\([0-7]{3})/g, (_, digits: string) =>
        String.fromCharCode(Number.parseInt(digits, 8)),
      );
      return { point, type: after.split(' ')[0] ?? '' };
    });
}

/** Mount points at or below a directory, the latest first. */
export function mountsBelow(directory: string): string[] {
  return mountPoints()
    .map((mount) => mount.point)
    .filter((point) => point === directory || point.startsWith(`${directory}/`))
    .reverse();
}
