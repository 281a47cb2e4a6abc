/** Runs work as a part of a trace. Attributes hold names of ours alone: nothing secret, nothing that a caller sent. */
export type Trace = <T>(
  name: string,
  attributes: Readonly<Record<string, string>>,
  work: () => Promise<T>,
) => Promise<T>

/** Where nobody collects traces. */
export const untraced: Trace = (_name, _attributes, work) => work()
