/**
 * A time zone file (TZif, version 1) with one fixed offset. Two renders at opposite ends of the clock never see the same
 * local date, so a template that prints the day is found as surely as one that prints the second.
 */
export function fixedZone(offsetHours: number): Uint8Array {
  const name = 'KEE\0';
  const file = Buffer.alloc(44 + 6 + name.length);
  file.write('TZif', 0, 'latin1');
  file.writeUInt32BE(1, 36); // one local time type
  file.writeUInt32BE(name.length, 40);
  file.writeInt32BE(offsetHours * 3600, 44);
  file.write(name, 50, 'latin1');
  return file;
}
