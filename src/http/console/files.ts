/** The files of the console, held in memory: with their packed forms they are about a megabyte. */
export interface ConsoleFiles {
  /** The page with a nonce in `<meta name="csp-nonce">`, where its script finds it. */
  page(nonce: string): Buffer
  /** By its name below `/console/assets/`. */
  asset(name: string): Asset | undefined
}

export interface Asset {
  readonly type: string
  readonly plain: Buffer
  /** By their names in `Content-Encoding`; the first that a browser takes is the smallest. */
  readonly packed: readonly (readonly [coding: string, bytes: Buffer])[]
}

const PAGE = 'index.html'
const FOLDER = 'assets/'
const CODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  woff2: 'font/woff2',
}

/** `files` by their paths in the directory of the build. Undefined if there was no build. */
export function consoleFilesOf(files: ReadonlyMap<string, Buffer>): ConsoleFiles | undefined {
  const page = files.get(PAGE)
  if (page === undefined) return undefined
  const assets = new Map<string, Asset>()
  for (const [path, plain] of files) {
    if (!path.startsWith(FOLDER) || CODINGS.some(([, ending]) => path.endsWith(ending))) continue
    const packed = CODINGS.flatMap(([coding, ending]) => {
      const bytes = files.get(path + ending)
      return bytes === undefined ? [] : [[coding, bytes] as const]
    })
    const type = TYPES[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
    assets.set(path.slice(FOLDER.length), { type, plain, packed })
  }
  const head = '<head>'
  const [before = '', ...rest] = page.toString().split(head)
  const after = rest.join(head)
  return {
    page: (nonce) => Buffer.from(`${before}${head}\n    <meta name="csp-nonce" content="${nonce}">${after}`),
    asset: (name) => assets.get(name),
  }
}

/** The smallest form that the header `Accept-Encoding` allows (RFC 9110 §12.5.3). */
export function formFor({ plain, packed }: Asset, accepted: string): { coding?: string; bytes: Buffer } {
  const taken = accepted.split(',').flatMap((one) => {
    const [, coding, weight] = /^\s*([\w*-]+)\s*(?:;\s*q=([\d.]+))?\s*$/i.exec(one) ?? []
    return coding === undefined || Number(weight ?? 1) === 0 ? [] : [coding.toLowerCase()]
  })
  const found = packed.find(([coding]) => taken.includes(coding))
  return found === undefined ? { bytes: plain } : { coding: found[0], bytes: found[1] }
}
