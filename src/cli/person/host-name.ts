const MAX_LENGTH = 255

/** The name of this machine, which the person sees who allows the login: printable ASCII, and never empty. */
export function hostName(name = process.getBuiltinModule('node:os').hostname()): string {
  return name.replace(/[^\x21-\x7e]+/g, '-').slice(0, MAX_LENGTH) || 'unknown'
}
