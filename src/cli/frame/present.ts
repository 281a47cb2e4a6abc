/** `T`, where what is optional may be undefined. */
type Loose<T> = { [Name in keyof T]: object extends Pick<T, Name> ? T[Name] | undefined : T[Name] }

/** The same without what is undefined. */
export function present<T extends object>(all: Loose<T>): T {
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as T
}
