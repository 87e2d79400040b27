/** CEL rules as schemas carry them. The rules stay in the subset that the API server and our evaluator agree on. */

export interface CelRule {
  readonly rule: string;
  /** What a person reads when the rule refuses; unique among all rules. */
  readonly message: string;
}

/** Member for `.meta()`, which must be the last call on a schema: later calls drop it. */
export const celRules = (...rules: CelRule[]): { 'x-kubernetes-validations': CelRule[] } => ({
  'x-kubernetes-validations': rules,
});

/** A field that keeps its value for the life of the object. */
export const immutable = (what: string): CelRule => ({ rule: 'self == oldSelf', message: `${what} cannot be changed` });

/** Members for a list that is merged by keys. */
export const listMap = (...keys: string[]) => ({
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': keys,
});
