/** The seam to whoever looks at the other half of a hosted pair, or at databases outside of any: in the same cluster, or in another one. */
import type { InstallationSpec } from '../../constructs/api/kinds/kubeovn-installation-spec.ts';
import type { PeerInstallation, PeerReport, SecretGeneration } from '../observe/hcp.ts';

/**
 * What a provider is told. It holds the name and the generation of the Secret with the client keys, and nothing out of it: a
 * provider loads the keys itself, and keeps them to itself.
 */
export interface PeerRequest {
  readonly installation: { readonly namespace: string; readonly name: string; readonly uid: string };
  readonly version: string;
  /** Not enabled, and without a peer namespace, for databases outside of any pair: then only these are looked at. */
  readonly hcp: NonNullable<InstallationSpec['hcp']>;
  /** As it was when the look began; undefined while there is none. */
  readonly secret: SecretGeneration | undefined;
}

/**
 * An installation that may be the other half, by the specification that it was accepted with. `asked` is the one that it has now,
 * where that is another one and not accepted.
 */
export interface PeerHalf extends PeerInstallation {
  readonly asked?: PeerInstallation['spec'];
}

/** What a provider saw, and the generation of the Secret that it looked with: another one than it was told is no evidence. */
export type PeerLook =
  | ({ readonly type: 'seen'; readonly secret: SecretGeneration | undefined } & Pick<
      PeerReport,
      'certificate' | 'endpoints'
    > & { readonly peers: readonly PeerHalf[] })
  /** It could not look. The message is told to people, and holds nothing of the keys. */
  | { readonly type: 'failed'; readonly message: string };

export interface PeerProvider {
  /** Looks once. Ends by the signal. */
  look(request: PeerRequest, signal: AbortSignal): Promise<PeerLook>;
}
