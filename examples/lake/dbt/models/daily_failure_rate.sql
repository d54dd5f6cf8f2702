select
    namespace,
    date as day,
    queue,
    sum(completed + advanced + failed) as ended,
    sum(failed) / sum(completed + advanced + failed) as failure_rate
from {{ source('gold', 'klasses') }}
group by namespace, date, queue
having sum(completed + advanced + failed) > 0
