/** Letters and digits of a code. */
const LENGTH = 8

/** As people type it: in any case, with or without the dash, with spaces. Undefined if it is no code. */
export function codeOf(typed: string): string | undefined {
  const code = typed
    .normalize('NFKC')
    .toUpperCase()
    .replaceAll(/[\s\p{Pd}]/gu, '')
  return /^[0-9A-Z]+$/.test(code) && code.length === LENGTH
    ? `${code.slice(0, 4)}-${code.slice(4)}`
    : undefined
}

/** The address to which a command wants the browser sent: of this machine, and nothing else. Undefined if it is another. */
export function ownMachine(address: string): URL | undefined {
  const url = URL.parse(address)
  const isOwn =
    url?.protocol === 'http:' &&
    (url.hostname === '127.0.0.1' || url.hostname === '[::1]') &&
    url.port !== '' &&
    url.pathname === '/callback' &&
    url.username === '' &&
    url.password === '' &&
    url.hash === ''
  return isOwn ? url : undefined
}
