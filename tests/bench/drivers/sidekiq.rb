# Sidekiq; the same command line as the drivers in Python, see ../driver.py.
require 'json'
require 'sidekiq'

CALLERS = 100
CONCURRENCY = 100
PACE = 0.03
ARGUMENT = { 'id' => 12345, 'email' => 'someone@example.com' }.freeze
EXPECTED = ENV['BENCH_JOBS'].to_i
OUT = ENV.fetch('BENCH_OUT', '/dev/null')

Sidekiq.configure_client { |config| config.redis = { url: ENV.fetch('BENCH_URL'), size: CALLERS } }
Sidekiq.configure_server { |config| config.redis = { url: ENV.fetch('BENCH_URL') } }

def now
  Process.clock_gettime(Process::CLOCK_REALTIME)
end

def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

def moment
  { time: now, cpu: cpu }
end

def note(value)
  File.write(OUT, "#{value}\n", mode: 'a')
end

def write(figures)
  File.write("#{OUT}.draft", JSON.generate(figures))
  File.rename("#{OUT}.draft", OUT)
end

# Counts the jobs of the worker, whose threads run them.
module Tally
  @lock = Mutex.new
  @started = @ended = 0

  def self.start
    @lock.synchronize { @first = moment if (@started += 1) == 1 }
  end

  def self.end
    @lock.synchronize do
      write({ first: @first, last: moment, pid: Process.pid }) if (@ended += 1) == EXPECTED
    end
  end
end

# Collects how long each job waited.
module Delays
  @lock = Mutex.new
  @delays = []

  def self.add(seconds)
    @lock.synchronize { write({ delays: @delays }) if @delays.push(seconds).size == EXPECTED }
  end
end

class Noop
  include Sidekiq::Job
  def perform(_argument)
    Tally.start
    Tally.end
  end
end

class Sleep
  include Sidekiq::Job
  def perform(_argument)
    Tally.start
    sleep 0.01
    Tally.end
  end
end

class PickUp
  include Sidekiq::Job
  def perform(sent)
    note(now - sent)
  end
end

class Arrive
  include Sidekiq::Job
  def perform(sent)
    Delays.add(now - sent)
  end
end

class Hang
  include Sidekiq::Job
  def perform(_argument)
    note(now)
    sleep 3600
  end
end

JOBS = { 'noop' => Noop, 'sleep' => Sleep, 'pick_up' => PickUp, 'arrive' => Arrive, 'hang' => Hang }.freeze

def put_together(job, count)
  turns = Queue.new
  count.times { turns << true }
  turns.close
  Array.new(CALLERS) { Thread.new { job.perform_async(ARGUMENT) while turns.pop } }.each(&:join)
end

def put(how, job, count)
  case how
  when 'one' then count.times { job.perform_async(ARGUMENT) }
  when 'together' then put_together(job, count)
  when 'many' then job.perform_bulk(Array.new(count) { [ARGUMENT] })
  when 'paced'
    count.times do
      job.perform_async(now)
      sleep PACE
    end
  else abort "unknown way to put: #{how}"
  end
end

def put_steadily(count, interval, offset)
  began = now
  count.times do |number|
    left = began + offset + number * interval - now
    sleep left if left.positive?
    Arrive.perform_async(now)
  end
end

def measure(count)
  began, used = now, cpu
  yield
  puts JSON.generate({ jobs: count, seconds: now - began, cpu: cpu - used })
end

def main(what, *arguments)
  exec 'sidekiq', '--require', __FILE__, '--concurrency', CONCURRENCY.to_s if what == 'work'

  Noop.perform_async(ARGUMENT) unless what == 'paced' # the first put also connects
  if what == 'steady'
    count, interval, offset = arguments
    puts 'ready'
    $stdout.flush
    $stdin.gets
    measure(count.to_i) { put_steadily(count.to_i, interval.to_f, offset.to_f) }
  else
    job, count = arguments
    measure(count.to_i) { put(what, JOBS.fetch(job), count.to_i) }
  end
end

main(*ARGV) if $PROGRAM_NAME == __FILE__
