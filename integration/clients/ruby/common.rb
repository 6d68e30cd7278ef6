# What the scripts share.

def scenario(name)
  yield name
rescue StandardError => e
  cause = e.respond_to?(:error_number) ? e : e.cause
  puts "#{name} error=#{cause.respond_to?(:error_number) ? cause.error_number : e.inspect.tr(" \n", '__')}"
end

def show(value)
  value.nil? ? 'NULL' : value.to_s
end
