/** What is told of objects of the ledger and of Services: reason and type of every Event there is, by kind. */

type Types = Readonly<Record<string, 'Normal' | 'Warning'>>;

export const eventTypes: Readonly<Record<string, Types>> = {
  IPAddressClaim: {
    ClassNotFound: 'Warning',
    NoDefaultClass: 'Warning',
    MultipleDefaultClasses: 'Warning',
    Matched: 'Normal',
    Pending: 'Normal',
    Bound: 'Normal',
    // D15: a loss is a warning.
    Lost: 'Warning',
    AddressDeleted: 'Normal',
    AddressReleased: 'Normal',
    PreBindingRefused: 'Warning',
    AddressNameUnusable: 'Warning',
    Reserving: 'Normal',
    Provisioned: 'Normal',
    LedgerMismatch: 'Warning',
    PlaceholderRefused: 'Warning',
  },
  IPAddress: {
    InvalidAddress: 'Warning',
    PlaceholderRefused: 'Warning',
    DuplicateAddress: 'Warning',
    DeletionBlocked: 'Warning',
    Reclaimed: 'Normal',
    Returned: 'Normal',
    Held: 'Normal',
    AssociationCleared: 'Normal',
    Conflict: 'Warning',
    ConflictResolved: 'Normal',
    ReservationLost: 'Warning',
    ReservationRestored: 'Normal',
    Releasing: 'Normal',
  },
  IPAddressClass: {
    ClassInUse: 'Warning',
    InvalidClassParameters: 'Warning',
    ClassRangeInUse: 'Warning',
    PoolRefused: 'Warning',
  },
  Service: {
    ClaimNotFound: 'Warning',
    ClaimNotBound: 'Normal',
    AssociationRejected: 'Warning',
    Associated: 'Normal',
    Disassociated: 'Normal',
    AddressConflict: 'Warning',
    AddressContested: 'Warning',
    ServiceUnfit: 'Warning',
    PinDiffers: 'Warning',
    AddressNotInLedger: 'Warning',
  },
};

/** Throws for an Event of another type than it is to have, or that there is none of. */
export function checkEvent(kind: string, type: string, reason: string): void {
  const wanted = eventTypes[kind]?.[reason];
  if (wanted !== type) throw new Error(`Event ${reason} of ${kind} is ${type}, and is to be ${wanted ?? 'none'}`);
}
