import { z } from 'zod';
import { celRules } from '../cel.ts';
import { digest, dnsName, duration, objectUID, text, timestamp, uuid } from '../fields.ts';

/** Field types of the network kinds. */

const anyPort = '([1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const highPort =
  '(102[4-9]|10[3-9][0-9]|1[1-9][0-9]{2}|[2-9][0-9]{3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])';
const ipv4 = '((25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])[.]){3}(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])';
const ipv6 = '\\\\[[0-9a-fA-F]*:[0-9a-fA-F:.]*\\\\]';
const host = '[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?';

/** Endpoint of an OVN database. `what` makes the message of the rule unique. */
export const endpoint = (what: string) =>
  z
    .string()
    .max(320)
    .meta({
      description: `${what} database as tcp:<host>:<port> or ssl:<host>:<port>; IPv6 in brackets.`,
      ...celRules({
        rule: `self.matches('^(tcp|ssl):(${ipv6}|${host}):${anyPort}$')`,
        message: `${what} must be tcp:<host>:<port> or ssl:<host>:<port> with a port from 1 to 65535`,
      }),
    });

/** Listener of a member: literal address, unprivileged port. */
export const listener = (what: string) =>
  z
    .string()
    .max(64)
    .meta({
      description: `${what} listener as tcp:<address>:<port> or ssl:<address>:<port>.`,
      ...celRules({
        rule: `self.matches('^(tcp|ssl):(${ipv4}|${ipv6}):${highPort}$')`,
        message: `${what} must be tcp:<address>:<port> or ssl:<address>:<port> with a literal address and a port from 1024 to 65535`,
      }),
    });

/** Address of a RAFT server as OVSDB knows it. */
export const raftAddress = () =>
  z
    .string()
    .max(64)
    .meta({
      description: 'RAFT address with a literal IP.',
      ...celRules({
        rule: `self.matches('^(tcp|ssl):(${ipv4}|${ipv6}):${anyPort}$')`,
        message: 'the RAFT address must be tcp:<address>:<port> or ssl:<address>:<port> with a literal address',
      }),
    });

const databaseNames = ['OVN_Northbound', 'OVN_Southbound'] as const;
export const databaseName = () => z.enum(databaseNames);

export const requestedBy = () =>
  text(256).optional().meta({ description: 'Who asked, for the record. It authorises nothing.' });

/** Immutable reference to one half of a backup pair. */
const backupReference = z.strictObject({
  database: databaseName(),
  reference: text(1024),
  digest: digest(),
  clusterID: uuid(),
  capturedAt: timestamp(),
});

export const backupPair = z.strictObject({
  pairID: digest().meta({ description: 'Digest over both references; recomputed whenever the pair is relied upon.' }),
  northbound: backupReference,
  southbound: backupReference,
  observedVersion: text(64),
  topologyDigest: digest(),
  destination: text(1024),
  capturedAt: timestamp(),
});

/** Reference to an object that must still be the same one. */
export const uidRef = () =>
  z.strictObject({
    name: dnsName().meta({ description: 'Name of the object.' }),
    uid: objectUID().meta({
      description: 'UID of the object; one of the same name that was created again is another.',
    }),
  });

export const backupSchedule = () =>
  duration().meta({
    description: 'Interval between captures, from 1m to 720h.',
    ...celRules({
      rule: "duration(self) >= duration('1m') && duration(self) <= duration('720h')",
      message: 'schedule must be from 1m to 720h',
    }),
  });
