import { isIP } from 'node:net'
import type { ProxySettings } from '../../proxy/types.ts'
import { defined, type ProxyWish, readWish } from './proxy-wish.ts'
import type { Faults, Shape } from './shape.ts'

const MOST_USERS = 64
const HIGHEST_UID = 4_294_967_294

/** What a file says of a proxy that stands alone: also where it listens, and who may connect. */
export function readOwnWish(faults: Faults, given: Shape): ProxyWish {
  const wish = readWish(faults, [], given)
  const { listen: address, uids: users } = given
  const listen = address === undefined ? undefined : readListen(address)
  const uids = users === undefined ? undefined : readUids(users)
  if (address !== undefined && listen === undefined)
    faults.add(['listen'], 'listen must be an address of this machine, such as 127.0.0.1 or 127.0.0.1:3128')
  if (users !== undefined && uids === undefined)
    faults.add(['uids'], 'uids must be a list of numbers of users, or any')
  return { ...wish, ...defined({ listen, uids }) }
}

export function readListen(given: unknown): ProxySettings['listen'] | undefined {
  if (typeof given !== 'string') return undefined
  const [, bracketed, plain, digits = '0'] =
    /^(?:\[([^\]]+)\]|([^:]+|[^:]*:[^:]*:.*?))(?::(\d{1,5}))?$/.exec(given) ?? []
  const name = bracketed ?? plain ?? ''
  const host = name === 'localhost' ? '127.0.0.1' : name
  const port = Number(digits)
  return isIP(host) !== 0 && port <= 65_535 ? { host, port } : undefined
}

function readUids(given: unknown): readonly number[] | 'any' | undefined {
  if (given === 'any') return 'any'
  const isList = Array.isArray(given) && given.length > 0 && given.length <= MOST_USERS
  return isList && given.every(isUid) ? (given as number[]) : undefined
}

export const isUid = (uid: unknown) => Number.isInteger(uid) && Number(uid) >= 0 && Number(uid) <= HIGHEST_UID
