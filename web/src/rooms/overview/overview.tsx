import { useState } from 'react'
import { useRefusal } from '../../api/me.ts'
import { useRead } from '../../api/queries.ts'
import { useEntries } from '../../shell/entries.ts'
import { useFilters } from '../../ui/address.ts'
import { CopyAs } from '../../ui/copy-as.tsx'
import { Empty, ErrorNote, Skeleton } from '../../ui/notes.tsx'
import { Page } from '../../ui/page.tsx'
import { Time } from '../../ui/time.tsx'
import { Day, Figures } from './figures.tsx'
import { isNew, type Known } from './guide.ts'
import { Guide } from './guide.tsx'
import { Holders } from './holders.tsx'
import { Needs } from './needs.tsx'
import { Server, useNodes } from './server.tsx'

const ROUTE = 'GET /v1/admin/overview'
const AGAIN_MS = 15_000

/** Who holds what right now, and what needs a person; on a new server, the way to a first credential. */
export function Overview() {
  const [filters, setFilters] = useFilters(['guide'])
  const refused = useRefusal('readOverview')
  const { data, error, refetch } = useRead(
    ROUTE,
    {},
    { enabled: refused === undefined, refetchInterval: AGAIN_MS },
  )
  const held = refused === undefined ? data?.live.total : 0
  const guide = useGuide(held, filters.guide !== undefined)
  const { known } = guide
  // Asked for together with the numbers, and shown below them.
  useNodes(refused === undefined)
  const open = () => setFilters({ guide: '1' })
  useEntries([{ name: 'First steps: backend, agent, credential', group: 'Here', words: 'guide', run: open }])
  return (
    <Page
      title="Overview"
      subtitle={
        data === undefined ? undefined : (
          <>
            as of <Time at={data.at} />
          </>
        )
      }
      actions={
        <CopyAs
          command={'mayfly credentials ls\nmayfly pending\nmayfly backend ls'}
          request="GET /v1/admin/overview"
        />
      }
    >
      <div className="h-full overflow-y-auto">
        <div className="mx-auto grid max-w-[1400px] gap-8 px-4 py-6">
          {guide.isOpen && (
            <Guide
              known={known}
              onAct={guide.keep}
              onClose={() => {
                guide.close()
                setFilters({ guide: undefined })
              }}
            />
          )}
          {refused !== undefined && (
            <Empty title="The numbers need admin:metrics:read">
              {refused} The other rooms show what you may see.
            </Empty>
          )}
          {error !== null && <ErrorNote error={error} retry={() => void refetch()} />}
          {(data === undefined || guide.isComing) && error === null && refused === undefined && (
            <Skeleton lines={8} />
          )}
          {data !== undefined && !guide.isComing && (
            <>
              <Figures overview={data} />
              <Needs overview={data} />
              <Day overview={data} />
              <Holders live={data.live} />
              <Server overview={data} />
            </>
          )}
        </div>
      </div>
    </Page>
  )
}

/** What there is of each, by one of them. */
function useKnown(isNeeded: boolean): { readonly known: Known; readonly isLoading: boolean } {
  const one = { query: { limit: 1 } }
  const may = (refused: string | undefined) => ({ enabled: isNeeded && refused === undefined })
  const backends = useRead('GET /v1/admin/backends', one, may(useRefusal('listBackends')))
  const agents = useRead('GET /v1/admin/agents', one, may(useRefusal('listAgents')))
  const tokens = useRead('GET /v1/admin/tokens', one, may(useRefusal('listCredentials')))
  const nameOf = (found: readonly { readonly name: string }[] | undefined) =>
    found === undefined ? undefined : (found[0]?.name ?? null)
  const known = {
    backend: nameOf(backends.data),
    agent: nameOf(agents.data),
    credential: tokens.data === undefined ? undefined : (tokens.data[0]?.id ?? null),
  }
  return { known, isLoading: backends.isLoading || agents.isLoading || tokens.isLoading }
}

const KEY = 'mayfly.guide'

/**
 * The guide is there while the server is new, until somebody closes it; and whenever the address asks for it. `held`: how many live
 * credentials there are. While anybody holds one, the server is not new, and nothing more is asked for that.
 */
function useGuide(held: number | undefined, isAsked: boolean) {
  const [isKept, setKept] = useState(false)
  const [isClosed, setClosed] = useState(() => localStorage.getItem(KEY) === 'closed')
  const isWanted = isAsked || isKept
  const mayBeNew = held === 0 && !isClosed
  const { known, isLoading } = useKnown(isWanted || mayBeNew)
  return {
    known,
    isOpen: isWanted || (mayBeNew && isNew(known) === true),
    /** Nothing is shown below where the guide may come. */
    isComing: !isWanted && mayBeNew && isLoading,
    keep: () => setKept(true),
    close: () => {
      localStorage.setItem(KEY, 'closed')
      setClosed(true)
      setKept(false)
    },
  }
}
