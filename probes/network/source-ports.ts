/**
 * Source ports for the questions of a client, one after the other. A client asks the same server directly and through its
 * Service: where both come from one port within a minute, connection tracking that translates only the way in (OVN on a
 * switch without all-zero source NAT) sees one connection twice and drops the second, and the probe would find its own
 * traffic in its way. The kernel chooses ports by the address that is asked, and so may well choose one for both.
 */

/** RFC 6335, section 6, has dynamic ports from 49152 on; Linux takes them from here. */
const first = 32_768;
const last = 60_999;

/** The next port each time it is called; it begins somewhere, so that a client that was started anew does not repeat itself. */
export type SourcePorts = () => number;

/** @param random from 0 up to, and without, 1 */
export function sourcePorts(random: () => number): SourcePorts {
  const count = last - first + 1;
  let at = Math.floor(random() * count);
  return () => {
    at = (at + 1) % count;
    return first + at;
  };
}
