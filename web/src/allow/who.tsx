import { useMe } from '../api/me.ts'
import { visible } from '../ui/hostile.ts'
import { Skeleton } from '../ui/notes.tsx'
import { whoOf } from '../ui/person.tsx'
import { Time } from '../ui/time.tsx'

/** As whom the command will act. */
export function Who() {
  const me = useMe()
  if (me === undefined) return <Skeleton lines={1} />
  return (
    <p className="text-muted [overflow-wrap:anywhere]">
      You are {visible(me.name ?? '')} ({visible(whoOf(me))}). A command that you allow administers Mayfly as
      you. It is logged out when you end this session, and <Time at={me.session?.expires_at} /> at the latest.
    </p>
  )
}
