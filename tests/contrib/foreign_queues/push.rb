# What an application with sidekiq does, without a server of sidekiq's: push jobs. Prints a line for each.
# ruby push.rb <url of Redis> <what>
require "sidekiq"

url, what = ARGV
Sidekiq.configure_client { |config| config.redis = {url: url} }
Sidekiq.logger.level = Logger::ERROR

class HardWorker
  include Sidekiq::Worker
  sidekiq_options queue: "mail", retry: 7, tags: ["ruby", "hard"]
end

case what
when "some"
  puts HardWorker.perform_async(1, 2.0, "\u00e9 \" \\ ]}", nil, [], {}, {"args" => [3]}, 12345678901234567890)
  puts HardWorker.perform_in(3600, "later")
  puts HardWorker.set(queue: "post", retry: false).perform_async
  puts Sidekiq::Client.push_bulk("class" => "Plain", "queue" => "mail", "args" => [["a"], ["b"], ["c"]])
when "many"
  (1..1000).each { |number| puts HardWorker.perform_async(number) }
end
