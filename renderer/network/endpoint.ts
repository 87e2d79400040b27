/** An OVN database endpoint as a specification writes it: `tcp:<host>:<port>` or `ssl:<host>:<port>`. */
export interface Endpoint {
  readonly scheme: 'tcp' | 'ssl';
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
}

/** The parts of an endpoint, or undefined when the text is not one. */
export function parseEndpoint(text: string): Endpoint | undefined {
  const [, scheme, host, port] = /^(tcp|ssl):(\[[0-9a-fA-F:]+\]|[^:[\]\s]+):([0-9]{1,5})$/.exec(text) ?? [];
  if (scheme === undefined || host === undefined || port === undefined) return undefined;
  const number = Number(port);
  if (number < 1 || number > 65535) return undefined;
  return { scheme: scheme as Endpoint['scheme'], host: host.replace(/^\[|\]$/g, ''), port: number };
}

/** The endpoint as OVS and OVN read it, an IPv6 host in brackets. */
export const formatEndpoint = (endpoint: Endpoint): string =>
  `${endpoint.scheme}:${endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host}:${endpoint.port}`;
